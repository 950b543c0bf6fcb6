import ssl

from panpan.system.web.network import usual_certificates


def test_certificates_are_demanded_and_have_to_be_of_the_host() -> None:
    context = usual_certificates()

    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
