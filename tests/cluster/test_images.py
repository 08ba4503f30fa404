"""What is in the images, read from their archives."""

import json
import re
import subprocess
import tarfile

import pytest
from support import images

LOADER = ["/opt/parallelrun/lib/ld.so", "--library-path", "/opt/parallelrun/lib"]
OURS = [images.RUNTIME, images.OPERATOR]


PACKAGES = "var/lib/dpkg/status.d/"
HEADERS_ONLY = {"libboost1.74-dev", "nlohmann-json3-dev", "libcli11-dev"}


class Image:
    def __init__(self, name, archive):
        self.name = name
        self.archive = archive
        self.files = {}
        self.versions = {}  # of the Debian packages that it says it holds parts of
        with tarfile.open(archive) as outer:
            manifest = json.load(outer.extractfile("manifest.json"))[0]
            self.config = json.load(outer.extractfile(manifest["Config"]))
            for layer in manifest["Layers"]:
                with tarfile.open(fileobj=outer.extractfile(layer)) as inner:
                    self._read(inner)

    def _read(self, layer):
        for entry in layer:
            name = entry.name.strip("/")
            self.files[name] = entry
            if name.startswith(PACKAGES) and entry.isfile():
                said = layer.extractfile(entry).read().decode()
                fields = dict(re.findall(r"^(Package|Version): (.+)$", said, re.M))
                self.versions[fields["Package"]] = fields["Version"]

    def size(self, folder=""):
        return sum(entry.size for name, entry in self.files.items() if name.startswith(folder))


@pytest.fixture(params=OURS)
def image(request, archives):
    return Image(request.param, archives[request.param])


def test_who_runs_and_how(image):
    config = image.config["config"]
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"][:3] == LOADER
    assert len(config["Entrypoint"]) == 4
    assert config["Entrypoint"][3].strip("/") in image.files


def test_labels(image):
    labels = image.config["config"]["Labels"]
    for name in ("title", "description", "licenses", "version", "revision"):
        assert labels[f"org.opencontainers.image.{name}"]
    assert labels["org.opencontainers.image.version"] == images.VERSION


def test_holds_the_bundle_and_nothing_else(image):
    outside = [
        name
        for name, entry in image.files.items()
        if entry.isfile() and not name.startswith(("opt/parallelrun/", PACKAGES, "etc/os-release"))
    ]
    assert outside == []
    for name in image.files:
        assert "__pycache__" not in name
        assert not name.endswith(("/sh", "/bash", "/busybox", "/python3"))


def test_anybody_may_read_it_and_nobody_write(image):
    for name, entry in image.files.items():
        if entry.isfile():
            assert entry.mode & 0o444 == 0o444, name
        assert entry.mode & 0o022 == 0, name
        assert entry.mode & 0o6000 == 0, name


def test_every_library_and_header_has_its_licence_and_its_package(image):
    licences = {
        name.split("/")[-1] for name in image.files if name.startswith("opt/parallelrun/licenses/")
    }
    assert {"libc6", "libssl3"} <= licences
    assert licences >= HEADERS_ONLY
    assert licences - {"licenses"} == set(image.versions)


def test_the_page_of_third_party_software_is_complete(image):
    page = (images.ROOT / "docs/third-party.md").read_text()
    held = {name for name in image.versions if not name.endswith("-dev")} | HEADERS_ONLY
    assert {name for name in held if f"`{name}`" not in page} == set()


def test_cpprestsdk_is_in_the_operator_alone(archives):
    for name, there in ((images.RUNTIME, False), (images.OPERATOR, True)):
        held = set(Image(name, archives[name]).versions)
        assert ("libcpprest2.10" in held, "libbrotli1" in held) == (there, there), name


def test_size_of_the_runtime(archives, figures):
    image = Image(images.RUNTIME, archives[images.RUNTIME])
    megabytes = image.size("opt/parallelrun") / 1e6
    figures.append(
        f"runtime image: {image.size() / 1e6:.1f} MB, of it the bundle {megabytes:.1f} MB"
    )
    assert megabytes < 40


def test_size_of_the_operator(archives, figures):
    image = Image(images.OPERATOR, archives[images.OPERATOR])
    figures.append(f"operator image: {image.size() / 1e6:.1f} MB")
    assert image.size() < 40e6


def test_bill_of_materials(image, figures):
    """Syft finds every Debian package that a file of the image is of, with its version."""
    tools = images.ROOT / "tests/deploy/tools"
    folder = subprocess.check_output([tools, "syft"], text=True, timeout=1800).strip()
    words = [f"{folder}/syft", "scan", f"docker-archive:{image.archive}", "-q", "-o", "spdx-json"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "SYFT_CHECK_FOR_APP_UPDATE": "false"}
    made = json.loads(subprocess.check_output(words, timeout=300, env=environment))
    found = {
        package["name"]: package["versionInfo"]
        for package in made["packages"]
        if any(
            reference["referenceLocator"].startswith("pkg:deb/debian/")
            for reference in package.get("externalRefs", [])
        )
    }
    assert found == image.versions
    figures.append(f"{image.name}: bill of materials with {len(found)} Debian packages")
