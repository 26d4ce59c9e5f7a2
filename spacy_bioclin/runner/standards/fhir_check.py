"""Check bundles of FHIR R4B with fhir.resources, if it is installed."""

from typing import Any

from ...errors import BioclinError, without_context


@without_context()
def check_bundle(bundle: dict[str, Any]) -> None:
    """Check a Bundle with fhir.resources, the extra `fhir`.

    RAISES (BioclinError): The library is missing, or the Bundle is not valid in R4B. The message
        names the elements and never their values, which are patient data.
    """
    try:
        from fhir.resources.R4B.bundle import Bundle
    except ImportError:
        raise BioclinError(
            "Checking resources needs the extra 'fhir': pip install 'spacy-bioclin[fhir]' "
            "(fhir.resources)"
        ) from None
    try:
        Bundle.model_validate(bundle)
    except ValueError as error:
        errors: list[Any] = getattr(error, "errors", list)()
        places = sorted({".".join(str(part) for part in each["loc"]) for each in errors})
        raise BioclinError(f"Not a Bundle of FHIR R4B: see {', '.join(places) or 'it'}") from None
