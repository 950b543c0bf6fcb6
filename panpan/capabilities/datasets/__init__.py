"""DatasetDownload: data sets and other large files, in two steps."""
