"""What a mention means: sections, negation, uncertainty, history, family, measurements."""
