"""Renders the table as CloudFormation and Terraform, with IAM policies for the processes that use it.

A policy allows exactly the requests that its kind of process makes; a test runs each kind and compares.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tickler.stores.dynamodb.layout import DUE, LISTED, OPEN
from tickler.stores.dynamodb.schema import KEY_TYPES, TTL, table_definition
from tickler.stores.optional import no_such_form

STREAM_VIEW = "NEW_AND_OLD_IMAGES"


class Role(NamedTuple):
    """A kind of process, with its actions on the table and the indexes that it queries."""

    does: str
    actions: tuple[str, ...]
    indexes: tuple[str, ...]


# The PartiQL actions allow statements of a BatchExecuteStatement; PutItem, UpdateItem and DeleteItem, writes of a transaction.
# Opening the store needs most of them: it checks the table, restores rows that became readable, and records the zone database.
_ACTIONS = (
    "DescribeTable",
    "GetItem",
    "BatchGetItem",
    "Query",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "PartiQLInsert",
    "PartiQLUpdate",
    "PartiQLDelete",
)
ROLES = {
    "worker": Role(
        "A process that claims and delivers due schedules, and keeps and prunes records", _ACTIONS, (DUE, OPEN, LISTED)
    ),
    "api": Role("A process that writes and lists schedules, fires and records, but claims nothing", _ACTIONS, (OPEN, LISTED)),
}

# Actions that a command needs. The later `migrate` lines add to the first.
COMMANDS = {
    "tickler migrate": ("DescribeTable", "DescribeTimeToLive", "GetItem", "PutItem"),
    "tickler migrate, where something is missing": ("CreateTable", "UpdateTable", "UpdateTimeToLive"),
    "tickler migrate --shards": ("UpdateItem",),
    "tickler migrate --home": ("Scan", "PartiQLUpdate"),
    "tickler doctor --scan": ("DescribeTable", "Scan"),
}


def render(form: str, table: str) -> str:
    if form == "cloudformation":
        return _cloudformation(table)
    if form == "terraform":
        return _terraform(table)
    if form == "iam":
        return _iam(table)
    raise no_such_form(f"dynamodb://{table}", form, "cloudformation")


def _notes(table: str) -> list[str]:
    return [
        f"After applying this, run `tickler migrate --store dynamodb://{table}` once: it writes the settings.",
        "These commands need permissions that the policies below do not give:",
        *(f"  {command}: {', '.join(_prefixed(actions))}" for command, actions in COMMANDS.items()),
    ]


def _comment(table: str) -> str:
    return "".join(f"# {line}\n" for line in _notes(table))


def _prefixed(actions: Iterable[str]) -> list[str]:
    return [f"dynamodb:{action}" for action in actions]


# IAM.


def _iam(table: str) -> str:
    arn = f"arn:aws:dynamodb:*:*:table/{table}"
    policies = {name: _policy(role, arn, [f"{arn}/index/{index}" for index in role.indexes]) for name, role in ROLES.items()}
    return json.dumps({"comment": _notes(table), **policies}, indent=2) + "\n"


def _policy(role: Role, table_arn: str, index_arns: list[str]) -> dict[str, object]:
    items = {"Sid": "Items", "Effect": "Allow", "Action": _prefixed(role.actions), "Resource": [table_arn]}
    indexes = {"Sid": "Indexes", "Effect": "Allow", "Action": _prefixed(["Query"]), "Resource": index_arns}
    return {"Version": "2012-10-17", "Statement": [items, indexes]}


# CloudFormation.


class _Tagged(str):
    """A YAML value that is written unquoted: a CloudFormation function."""

    __slots__ = ()


def _cloudformation(table: str) -> str:
    arn = _Tagged("!GetAtt Table.Arn")
    resources: dict[str, object] = {
        "Table": {
            "Type": "AWS::DynamoDB::Table",
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": {
                **table_definition(_Tagged("!Ref TableName")),
                "StreamSpecification": {"StreamViewType": STREAM_VIEW},
                "TimeToLiveSpecification": {"AttributeName": TTL, "Enabled": True},
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
                "DeletionProtectionEnabled": True,
            },
        }
    }
    outputs: dict[str, object] = {
        "TableName": {"Value": _Tagged("!Ref Table")},
        "TableArn": {"Value": arn},
        "StreamArn": {"Value": _Tagged("!GetAtt Table.StreamArn")},
    }
    for name, role in ROLES.items():
        index_arns: list[str] = [_Tagged(f"!Sub ${{Table.Arn}}/index/{index}") for index in role.indexes]
        properties = {"Description": role.does, "PolicyDocument": _policy(role, arn, index_arns)}
        resources[f"{name.title()}Policy"] = {"Type": "AWS::IAM::ManagedPolicy", "Properties": properties}
        outputs[f"{name.title()}PolicyArn"] = {"Value": _Tagged(f"!Ref {name.title()}Policy")}
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": "Table of a Tickler store, and policies for its processes",
        "Parameters": {"TableName": {"Type": "String", "Default": table}},
        "Resources": resources,
        "Outputs": outputs,
    }
    return _comment(table) + "".join(f"{line}\n" for line in _yaml(template))


def _yaml(value: Mapping[str, object] | list[object], indent: str = "") -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            first, *rest = _yaml(each, indent + "  ") if isinstance(each, dict | list) else [f"{indent}  {_scalar(each)}"]
            yield f"{indent}- {first.lstrip()}"
            yield from rest
        return
    for name, each in value.items():
        if isinstance(each, dict | list):
            yield f"{indent}{name}:"
            yield from _yaml(each, indent + "  ")
        else:
            yield f"{indent}{name}: {_scalar(each)}"


def _scalar(value: object) -> str:
    """Format a value. Quotes text that some version of YAML reads as something else, such as `N`, which was once false."""
    if isinstance(value, _Tagged):
        return value
    looks_like_text = isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w:.-]*( [\w,.-]+)*", value)
    means_something = str(value).lower() in ("true", "false", "yes", "no", "on", "off", "y", "n", "null")
    return str(value) if looks_like_text and not means_something else json.dumps(value)


# Terraform.


def _terraform(table: str) -> str:
    definition = table_definition(table)
    blocks = [
        _block('variable "tickler_table"', _arguments(type="string", default=_hcl(table))),
        _block(
            'resource "aws_dynamodb_table" "tickler"',
            _arguments(
                name="var.tickler_table",
                billing_mode=_hcl(definition["BillingMode"]),
                **_hcl_keys(definition["KeySchema"]),
                stream_enabled="true",
                stream_view_type=_hcl(STREAM_VIEW),
                deletion_protection_enabled="true",
            ),
            *(_block("attribute", _arguments(name=_hcl(name), type=_hcl(kind))) for name, kind in KEY_TYPES.items()),
            *(_hcl_index(index) for index in definition["GlobalSecondaryIndexes"]),
            _block("ttl", _arguments(attribute_name=_hcl(TTL), enabled="true")),
            _block("point_in_time_recovery", _arguments(enabled="true")),
            _block("lifecycle", _arguments(prevent_destroy="true")),
        ),
    ]
    outputs = {
        "table_name": "aws_dynamodb_table.tickler.name",
        "table_arn": "aws_dynamodb_table.tickler.arn",
        "stream_arn": "aws_dynamodb_table.tickler.stream_arn",
    }
    for name, role in ROLES.items():
        blocks += _hcl_policy(name, role)
        outputs[f"{name}_policy_arn"] = f"aws_iam_policy.tickler_{name}.arn"
    blocks += [_block(f'output "tickler_{name}"', _arguments(value=value)) for name, value in outputs.items()]
    return _comment(table) + "\n\n".join(blocks) + "\n"


def _hcl_index(index: dict[str, object]) -> str:
    keys, projection = index["KeySchema"], index["Projection"]
    assert isinstance(keys, list)
    assert isinstance(projection, dict)
    arguments = {"name": _hcl(index["IndexName"]), **_hcl_keys(keys), "projection_type": _hcl(projection["ProjectionType"])}
    if "NonKeyAttributes" in projection:
        arguments["non_key_attributes"] = _hcl(projection["NonKeyAttributes"])
    return _block("global_secondary_index", _arguments(**arguments))


def _hcl_keys(schema: list[dict[str, str]]) -> dict[str, str]:
    return {f"{key['KeyType'].lower()}_key": _hcl(key["AttributeName"]) for key in schema}


def _hcl_policy(name: str, role: Role) -> list[str]:
    arn = "aws_dynamodb_table.tickler.arn"
    index_arns = [f"${{{arn}}}/index/{index}" for index in role.indexes]
    statements = [
        _block("statement", _arguments(sid=_hcl(sid)), _arguments(actions=_hcl_lines(actions)), _arguments(resources=resources))
        for sid, actions, resources in [
            ("Items", _prefixed(role.actions), f"[{arn}]"),
            ("Indexes", _prefixed(["Query"]), _hcl_lines(index_arns)),
        ]
    ]
    policy = _arguments(
        name_prefix=_hcl(f"tickler-{name}-"),
        description=_hcl(role.does),
        policy=f"data.aws_iam_policy_document.tickler_{name}.json",
    )
    return [
        _block(f'data "aws_iam_policy_document" "tickler_{name}"', *statements),
        _block(f'resource "aws_iam_policy" "tickler_{name}"', policy),
    ]


def _hcl(value: object) -> str:
    return json.dumps(value)


def _hcl_lines(values: Iterable[str]) -> str:
    return "[\n" + "".join(f"  {_hcl(value)},\n" for value in values) + "]"


def _arguments(**values: str) -> str:
    width = max(map(len, values))
    return "\n".join(f"{name:{width}} = {value}" for name, value in values.items())


def _block(head: str, *parts: str) -> str:
    body = textwrap.indent("\n\n".join(parts), "  ")
    return f"{head} {{\n{body}\n}}"
