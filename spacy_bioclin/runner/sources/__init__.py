"""Where notes come from: files, folders of them, Docs, and queries of a database."""
