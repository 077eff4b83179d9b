"""AWS credentials, regions, SigV4 signatures, and the error codes that all services share."""
