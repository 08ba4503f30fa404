"""What the tests say to a cluster: kubectl as people use it, and cheap reads by `kubectl proxy`."""

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import waits

_PATHS = {
    "pods": "/api/v1",
    "events": "/api/v1",
    "secrets": "/api/v1",
    "services": "/api/v1",
    "configmaps": "/api/v1",
    "parallelrunjobs": "/apis/parallelrun.dev/v1alpha1",
    "leases": "/apis/coordination.k8s.io/v1",
}


def wait_until(condition, what, limit=120.0, pause=0.2):
    """waits.wait_until, for a cluster: more patient, and it asks less often."""
    return waits.wait_until(condition, what, limit, pause)


class Kube:
    def __init__(self, kubectl, kubeconfig):
        self._words = [str(kubectl), "--kubeconfig", str(kubeconfig)]
        words = [*self._words, "proxy", "--port=0"]
        self._proxy = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        line = self._proxy.stdout.readline()  # Starting to serve on 127.0.0.1:PORT
        self.url = f"http://{line.split()[-1]}"

    def close(self):
        self._proxy.terminate()
        self._proxy.wait(10)
        self._proxy.stdout.close()

    def kubectl(self, *words, check=True, text=None, data=None, limit=120):
        """What it printed; with `check` false, the finished process. With `data` all is bytes."""
        done = subprocess.run(
            [*self._words, *map(str, words)],
            input=data if text is None else text,
            capture_output=True,
            text=data is None,
            timeout=limit,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(map(str, words))}: {done.stderr}{done.stdout}")
        return done.stdout if check else done

    def apply(self, *objects, **options):
        content = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        return self.kubectl("apply", "-f", "-", text=content, **options)

    def uncordon(self, node):
        """Also waits until pods may come to it again."""
        self.kubectl("uncordon", node)
        path = f"/api/v1/nodes/{node}"
        wait_until(lambda: "taints" not in self.raw(path)["spec"], f"{node} open")

    def raw(self, path, **query):
        """The JSON at a path of the API, or None if there is nothing (404)."""
        text = self._read(path, query)
        return None if text is None else json.loads(text)

    def _read(self, path, query):
        url = f"{self.url}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise AssertionError(
                f"GET {path}: {error.code} {error.read().decode(errors='replace')}"
            ) from None

    def _path(self, resource, namespace):
        return f"{_PATHS[resource]}/namespaces/{namespace}/{resource}"

    def get(self, resource, namespace, name):
        return self.raw(f"{self._path(resource, namespace)}/{name}")

    def list(self, resource, namespace, **query):
        return self.raw(self._path(resource, namespace), **query)["items"]

    def log(self, namespace, pod, container=None, previous=False):
        query = {"container": container} if container else {}
        if previous:
            query["previous"] = "true"
        try:
            return self._read(f"{self._path('pods', namespace)}/{pod}/log", query) or ""
        except AssertionError as error:
            return str(error)
