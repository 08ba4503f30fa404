"""Certificates of the tests, made by openssl: one authority a folder, good for three days.

Keys are of P-256: every server and client under test takes them, and they are made in milliseconds.
"""

import subprocess
from pathlib import Path

_DAYS = ["-days", "3"]
_NEW = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


class CertificatesFailed(Exception):
    pass


def openssl(*words):
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, timeout=30)
    if done.returncode != 0:
        raise CertificatesFailed(f"openssl {words[0]}: {done.stderr.strip()}")


class Authority:
    """`folder`/ca.crt and ca.key, made at once. For one thread: its issues share a serial file."""

    def __init__(self, folder, subject="/CN=test-ca"):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.certificate = self.folder / "ca.crt"
        self._key = self.folder / "ca.key"
        made = ["-keyout", self._key, "-out", self.certificate]
        openssl("req", "-x509", *_NEW, *made, "-subj", subject, *_DAYS)

    def issue(self, name, subject, names=None):
        """Makes name.crt and name.key, for a server and for a client; `names` as in subjectAltName.

        Returns the two files."""
        key, request = self.folder / f"{name}.key", self.folder / f"{name}.csr"
        certificate, extensions = self.folder / f"{name}.crt", self.folder / f"{name}.ext"
        extensions.write_text(
            "extendedKeyUsage=serverAuth,clientAuth\n"
            + (f"subjectAltName={names}\n" if names else "")
        )
        openssl("req", *_NEW, "-keyout", key, "-out", request, "-subj", subject)
        sign = ["-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", *_DAYS]
        openssl("x509", "-req", "-in", request, *sign, "-out", certificate, "-extfile", extensions)
        return certificate, key
