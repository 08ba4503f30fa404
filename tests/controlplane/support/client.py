"""A small client of the Kubernetes API for the tests: JSON in, JSON out, errors as exceptions.

Thread-safe: each thread has a connection of its own.
"""

import base64
import http.client
import json
import ssl
import threading
import time
import urllib.parse

from waits import Limit, TooLate

CORE = {"Pod", "Secret", "ConfigMap", "Service", "Event", "Namespace", "Node", "ServiceAccount"}
PLURALS = {
    "Pod": ("v1", "pods"),
    "Secret": ("v1", "secrets"),
    "ConfigMap": ("v1", "configmaps"),
    "Service": ("v1", "services"),
    "Event": ("v1", "events"),
    "Namespace": ("v1", "namespaces"),
    "Node": ("v1", "nodes"),
    "ServiceAccount": ("v1", "serviceaccounts"),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
    "LimitRange": ("v1", "limitranges"),
    "ResourceQuota": ("v1", "resourcequotas"),
    "Job": ("batch/v1", "jobs"),
    "Lease": ("coordination.k8s.io/v1", "leases"),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies"),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets"),
    "ParallelRunJob": ("parallelrun.dev/v1alpha1", "parallelrunjobs"),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "ClusterRole": ("rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "Role": ("rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings"),
}


class ApiError(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status} {body.get('reason')}: {body.get('message')}")
        self.status = status
        self.reason = body.get("reason")
        self.message = body.get("message", "")
        self.body = body


class Client:
    def __init__(self, kubeconfig):
        text = json.loads(kubeconfig.read_text())
        cluster, user = text["clusters"][0]["cluster"], text["users"][0]["user"]
        address = urllib.parse.urlsplit(cluster["server"])
        self._host, self._port = address.hostname, address.port
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)
        self._headers = {"Accept": "application/json"}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        else:
            pair = kubeconfig.with_suffix(".pem")
            pair.write_bytes(
                b"".join(base64.b64decode(user[f"client-{k}-data"]) for k in ("certificate", "key"))
            )
            self._tls.load_cert_chain(pair)
        self._thread = threading.local()

    def request(
        self, method, path, body=None, content_type="application/json", query=None, timeout=120
    ):
        if query:
            path += "?" + urllib.parse.urlencode(query)
        data = None if body is None else json.dumps(body)
        headers = dict(self._headers)
        if data is not None:
            headers["Content-Type"] = content_type
        for attempt in range(2):
            reused = getattr(self._thread, "connection", None) is not None
            if not reused:
                self._thread.connection = http.client.HTTPSConnection(
                    self._host, self._port, context=self._tls, timeout=timeout
                )
            try:
                self._thread.connection.request(method, path, data, headers)
                answer = self._thread.connection.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException):
                self._thread.connection.close()
                self._thread.connection = None
                if attempt or not reused:
                    raise
        if "json" not in (answer.getheader("Content-Type") or ""):
            if answer.status >= 300:
                raise ApiError(answer.status, {"message": text.decode(errors="replace")})
            return text.decode()
        decoded = json.loads(text)
        if answer.status >= 300:
            raise ApiError(answer.status, decoded)
        return decoded

    def stream(self, path):
        """The events of a watch, until the server ends it."""
        connection = http.client.HTTPSConnection(self._host, self._port, context=self._tls)
        connection.request("GET", path, headers=self._headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise ApiError(answer.status, json.loads(answer.read()))
        for line in answer:
            yield json.loads(line)

    @staticmethod
    def path(kind, namespace=None, name=None, subresource=None):
        version, plural = PLURALS[kind]
        parts = ["", "api" if version == "v1" else "apis", version]
        if namespace:
            parts += ["namespaces", namespace]
        parts.append(plural)
        return "/".join(parts + [part for part in (name, subresource) if part])

    def get(self, kind, namespace, name):
        return self.request("GET", self.path(kind, namespace, name))

    def find(self, kind, namespace, name):
        """As get, or None where there is no such object."""
        try:
            return self.get(kind, namespace, name)
        except ApiError as e:
            if e.status != 404:
                raise
            return None

    def list(self, kind, namespace=None, **query):
        """The items of a kind; `labelSelector=` and `fieldSelector=` narrow them."""
        return self.request("GET", self.path(kind, namespace), query=query)["items"]

    def create(self, kind, namespace, body, **query):
        version, _ = PLURALS[kind]
        return self.request(
            "POST",
            self.path(kind, namespace),
            {"apiVersion": version, "kind": kind, **body},
            query=query,
        )

    def merge(self, kind, namespace, name, patch, subresource=None):
        return self.request(
            "PATCH",
            self.path(kind, namespace, name, subresource),
            patch,
            "application/merge-patch+json",
        )

    def strategic(self, kind, namespace, name, patch, subresource=None):
        return self.request(
            "PATCH",
            self.path(kind, namespace, name, subresource),
            patch,
            "application/strategic-merge-patch+json",
        )

    def delete(self, kind, namespace, name, **options):
        return self.request("DELETE", self.path(kind, namespace, name), options or None)

    def delete_if_there(self, kind, namespace, name, **options):
        try:
            self.delete(kind, namespace, name, **options)
        except ApiError as e:
            if e.status not in (404, 409):
                raise


def eventually(check, within=10.0, every=0.05, what=None):
    """Calls `check` until it neither fails an assertion nor returns a false value; returns what it
    returned. `what` is what did not come, for TooLate: text, or a function that makes it."""
    limit = Limit(within)
    while True:
        problem = None
        try:
            value = check()
            if value:
                return value
        except (AssertionError, KeyError, IndexError, TypeError) as e:
            problem = e
        if limit.over():
            told = (what() if callable(what) else what) or check.__doc__ or check.__qualname__
            if problem is not None:
                told += f": {type(problem).__name__}: {problem}"
            raise TooLate(f"not within {within} s: {told}") from problem
        time.sleep(every)
