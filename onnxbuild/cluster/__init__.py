"""Steps on other machines: an executor whose workers are processes of a Dask cluster."""
