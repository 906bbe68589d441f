"""The way to reach a registry: with TLS or without, whom to trust, and who asks."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import UsageError
from onnxbuild.registry.credentials import ANONYMOUS, Credentials


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """Settings for reaching a registry.

    Attributes:
        plain_http: No TLS.
        ca_file: Certificates to trust besides the system's, PEM.
        credentials: Those for the registry.
    """

    plain_http: bool = False
    ca_file: Path | None = None
    credentials: Credentials = ANONYMOUS

    def tls_context(self) -> ssl.SSLContext:
        """Return what checks certificates.

        Raises:
            UsageError: The file holds none.
        """
        context = ssl.create_default_context()
        if self.ca_file is None:
            return context
        try:
            context.load_verify_locations(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            is_content = isinstance(error, ssl.SSLError)
            why = "it holds no certificate in PEM" if is_content else error.strerror
            raise UsageError(f"can't use --ca-file {self.ca_file}: {why}") from error
        return context
