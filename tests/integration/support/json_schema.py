"""Holds values against a JSON schema, with as much of the language as docs/ uses."""

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}
KNOWN = {
    *("$schema", "$defs", "title", "description", "$ref", "type", "required", "properties"),
    *("items", "const", "enum", "minimum", "allOf", "if", "then"),
}


def problems(value, schema, root=None, where="$"):
    """What of the value is not as the schema has it, in words."""
    root = schema if root is None else root
    unknown = set(schema) - KNOWN
    assert not unknown, f"this checker does not know {unknown}"
    if "$ref" in schema:
        part = root
        for name in schema["$ref"].removeprefix("#/").split("/"):
            part = part[name]
        return problems(value, part, root, where)
    found = []
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, name) for name in types):
        return [f"{where} is {value!r}, and not {' or '.join(types)}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{where} is {value!r}, and not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where} is {value!r}, and none of {schema['enum']}")
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        found.append(f"{where} is {value!r}, less than {schema['minimum']}")
    if isinstance(value, dict):
        found += [
            f"{where} has no {name}" for name in schema.get("required", []) if name not in value
        ]
        for name, part in schema.get("properties", {}).items():
            if name in value:
                found += problems(value[name], part, root, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for place, one in enumerate(value):
            found += problems(one, schema["items"], root, f"{where}[{place}]")
    for part in schema.get("allOf", []):
        found += problems(value, part, root, where)
    if "if" in schema and not problems(value, schema["if"], root, where):
        found += problems(value, schema["then"], root, where)
    return found


def _is(value, name):
    # To Python True is a number.
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
