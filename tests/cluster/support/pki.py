"""Certificates and kubeconfigs of the test cluster."""

import json

import certificates


class Authority(certificates.Authority):
    def __init__(self, folder, server):
        super().__init__(folder, "/CN=test-cluster-ca")
        self.server = server

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
