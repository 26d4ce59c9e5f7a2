"""What a pipeline found, as rows of OMOP and resources of FHIR."""
