import ssl

from panpan.system.web.network import usual_certificates


def test_certificates_are_required_and_must_be_the_hosts() -> None:
    context = usual_certificates()

    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
