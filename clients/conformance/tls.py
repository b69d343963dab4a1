"""Certificates for servers, made anew for each run of the runner by the openssl command."""
import atexit
import functools
import pathlib
import shutil
import subprocess
import tempfile

DAYS = "2"
MADE_FOR = "subjectAltName=IP:127.0.0.1,DNS:localhost"


def openssl(*words):
    done = subprocess.run(["openssl", *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {words[0]}: {done.stderr.decode(errors='replace')}")


class Keys:
    """An authority, one that has signed nothing here (`other`), and a server's certificate."""

    def __init__(self, folder):
        self.ca, self.key, self.cert = folder / "ca.crt", folder / "server.key", folder / "server.crt"
        self.other = folder / "other.crt"
        self.authority(self.ca, folder / "ca.key", "rlock test authority")
        self.authority(self.other, folder / "other.key", "another authority")
        asked, extensions = folder / "server.csr", folder / "server.ext"
        extensions.write_text(f"{MADE_FOR}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", self.key, "-out", asked, "-subj", "/CN=localhost")
        openssl(
            "x509", "-req", "-in", asked, "-CA", self.ca, "-CAkey", folder / "ca.key", "-CAcreateserial",
            "-days", DAYS, "-sha256", "-extfile", extensions, "-out", self.cert,
        )

    @staticmethod
    def authority(cert, key, name):
        openssl(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-sha256", "-days", DAYS, "-keyout", key, "-out", cert,
            "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        )

    def of_server(self, cluster):
        """The settings of a server, but for its port."""
        settings = {
            "tls-cert-file": self.cert, "tls-key-file": self.key, "tls-ca-cert-file": self.ca,
            "tls-auth-clients": "no",
        }
        return {**settings, "tls-cluster": "yes"} if cluster else settings

    def of_client(self, which):
        return str({"ca": self.ca, "other": self.other}[which])


@functools.cache
def keys():
    """Those of this run."""
    folder = tempfile.mkdtemp(prefix="rlock-tls-")
    atexit.register(shutil.rmtree, folder, True)
    return Keys(pathlib.Path(folder))
