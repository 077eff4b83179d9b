"""Pricebook as functions of AWS Lambda, on DynamoDB: the web application, the stream of the table, and a beat for schedules.

| function | is called by | handler |
|---|---|---|
| `web` | API Gateway, or the URL of the function | `pricebook.serverless.handlers.web` |
| `stream` | the stream of the table, with `ReportBatchItemFailures` | `pricebook.serverless.handlers.stream` |
| `tick` | EventBridge each minute, or a managed schedule of a store | `pricebook.serverless.handlers.tick` |

Settings come from the environment, as everywhere. Responses of Lambda have at most 6 MB: export large files from elsewhere.
"""
