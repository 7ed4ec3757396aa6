"""A proxy that speaks TLS to browsers and plain HTTP to a server of this machine, with a certificate of its own."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def write_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Writes a self-signed certificate of a host, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    certificate, private = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form, secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, secret))
    return certificate, private


@contextlib.contextmanager
def tls_proxy(port: int, certificate: Path, key: Path, **added: str) -> Iterator[int]:
    """Yields the port of a proxy in front of a port of this machine.

    Args:
        port: of the server.
        certificate: PEM.
        key: PEM.
        added: headers that it adds to each request; "_" stands for "-". Those of the browser are replaced.
    """
    headers = {name.replace("_", "-"): value for name, value in added.items()}

    class Handler(http.server.BaseHTTPRequestHandler):
        def passed_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            theirs = {name: value for name, value in self.headers.items() if name.title() not in headers}
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request(self.command, self.path, body, {**theirs, **headers})
            answer = connection.getresponse()
            content = answer.read()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
            connection.close()

        do_GET = do_POST = passed_on  # noqa: N815 - the names that the library calls

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=20)
