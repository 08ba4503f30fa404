"""Volumes of a test's namespace, as claims, whose content the test can write and read.

On a cluster of this machine's own a claim is bound to a folder of it, the same on every node. On
another cluster it is of a storage class (`--storage-class`, which has to be ReadWriteMany), and a
pod reads and writes for the test.
"""

import io
import os
import shutil
import tarfile
from pathlib import Path

from support.kube import wait_until


def claim(namespace, name, mode, storage_class, volume=None):
    spec = {
        "accessModes": [mode],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    if volume:
        spec["volumeName"] = volume
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


class FolderVolume:
    def __init__(self, kube, namespace, name, folder, mode="ReadWriteMany"):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        os.chmod(self.folder, 0o777)
        self._kube = kube
        self._volume = f"{namespace}-{name}"
        metadata = {"name": self._volume}
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": [mode],
            "storageClassName": "",
            "hostPath": {"path": str(self.folder)},
            "claimRef": {"namespace": namespace, "name": name},
        }
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": metadata,
            "spec": spec,
        }
        kube.apply(volume)
        # A claim that its controller sees before its volume is bound at the next look, 15 s later.
        wait_until(lambda: self._phase("persistentvolumes/" + self._volume) == "Available", name)
        kube.apply(claim(namespace, name, mode, "", self._volume))
        path = f"namespaces/{namespace}/persistentvolumeclaims/{name}"
        wait_until(lambda: self._phase(path) == "Bound", f"the claim {name} bound")

    def _phase(self, path):
        return self._kube.raw(f"/api/v1/{path}")["status"].get("phase")

    def write(self, files):
        """`files`: path to bytes."""
        for path, content in files.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def read(self, path):
        return (self.folder / path).read_bytes()

    def files(self, pattern="**/*"):
        return sorted(
            str(p.relative_to(self.folder)) for p in self.folder.glob(pattern) if p.is_file()
        )

    def copy_to(self, folder):
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)

    def close(self):
        self._kube.kubectl("delete", "pv", self._volume, "--wait=false", "--ignore-not-found")


class PodVolume:
    def __init__(self, kube, namespace, name, storage_class, image, mode="ReadWriteMany"):
        self._kube = kube
        self._namespace = namespace
        self._pod = f"files-{name}"
        container = {
            "name": "files",
            "image": image,
            "command": ["sleep", "infinity"],
            "volumeMounts": [{"name": "volume", "mountPath": "/volume"}],
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        }
        spec = {
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": "volume", "persistentVolumeClaim": {"claimName": name}}],
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self._pod, "namespace": namespace},
            "spec": spec,
        }
        kube.apply(claim(namespace, name, mode, storage_class), pod)
        kube.kubectl(
            "wait", "-n", namespace, f"pod/{self._pod}", "--for=condition=Ready", "--timeout=120s"
        )

    def _words(self, *command):
        return ["exec", "-i", "-n", self._namespace, self._pod, "--", *command]

    def write(self, files):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path, content in files.items():
                entry = tarfile.TarInfo(path)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        self._kube.kubectl(*self._words("tar", "-xf", "-", "-C", "/volume"), data=packed.getvalue())

    def read(self, path):
        return self._kube.kubectl(*self._words("cat", f"/volume/{path}"), data=b"")

    def files(self, pattern="**/*"):
        listed = self._kube.kubectl(*self._words("sh", "-c", "cd /volume && find . -type f"))
        return sorted(
            p for p in (line[2:] for line in listed.splitlines()) if Path(p).match(pattern)
        )

    def copy_to(self, folder):
        packed = self._kube.kubectl(*self._words("tar", "-cf", "-", "-C", "/volume", "."), data=b"")
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder)

    def close(self):
        pass  # goes with the namespace
