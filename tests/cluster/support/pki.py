"""Certificates of the test cluster, made by openssl."""

import json
import subprocess
from pathlib import Path

_DAYS = "3"


def _openssl(*words, text=None):
    done = subprocess.run(
        ["openssl", *map(str, words)], input=text, capture_output=True, text=True, timeout=30
    )
    if done.returncode != 0:
        raise RuntimeError(f"openssl {words[0]}: {done.stderr}")


class Authority:
    def __init__(self, folder, server):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.server = server
        self.certificate = self.folder / "ca.crt"
        self._key = self.folder / "ca.key"
        new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        subject = ["-subj", "/CN=test-cluster-ca", "-days", _DAYS]
        _openssl("req", "-x509", *new, "-keyout", self._key, "-out", self.certificate, *subject)

    def issue(self, name, subject, names):
        """`names` as in subjectAltName. Returns the files of the certificate and of its key."""
        key, request = self.folder / f"{name}.key", self.folder / f"{name}.csr"
        certificate, extensions = self.folder / f"{name}.crt", self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n")
        new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        _openssl("req", *new, "-keyout", key, "-out", request, "-subj", subject)
        sign = ["-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-days", _DAYS]
        _openssl("x509", "-req", "-in", request, *sign, "-out", certificate, "-extfile", extensions)
        return certificate, key

    def kubeconfig(self, name, subject):
        certificate, key = self.issue(name, subject, f"DNS:{name}")
        file = self.folder / f"{name}.kubeconfig"
        cluster = {"server": self.server, "certificate-authority": str(self.certificate)}
        user = {"client-certificate": str(certificate), "client-key": str(key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
            "current-context": "test",
        }
        file.write_text(json.dumps(config))
        return file
