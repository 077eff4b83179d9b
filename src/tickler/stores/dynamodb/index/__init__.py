"""The schedule index in DynamoDB: a sharded sparse GSI."""
