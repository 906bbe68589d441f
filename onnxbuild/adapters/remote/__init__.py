"""A shared store on a server: blobs and signed records over HTTP, S3, Google, Azure or a folder."""
