"""Makes the table of values in docs/helm.md from the chart's values.yaml and values.schema.json."""

import json

import yaml

from support.render import CHART, ROOT

PAGE = ROOT / "docs/helm.md"
HEAD = "| value | default | is |\n|---|---|---|\n"
LONGEST = 130  # of a default that is shown


def _resolved(field, schema):
    while "$ref" in field:
        found = schema
        for key in field["$ref"].removeprefix("#/").split("/"):
            found = found[key]
        field = {**found, **{key: value for key, value in field.items() if key != "$ref"}}
    return field


def _leaves(field, schema, values, prefix=""):
    for name, inner in field["properties"].items():
        inner = _resolved(inner, schema)
        if "properties" in inner:
            yield from _leaves(inner, schema, values[name], f"{prefix}{name}.")
        else:
            yield prefix + name, values[name], inner


def _default(value):
    if value in ("", None):
        return ""
    text = json.dumps(value)
    return f"`{text}`" if len(text) <= LONGEST else "see values.yaml"


def _says(field):
    words = field["description"]
    if "enum" in field:
        words = f"{words.removesuffix('.')}: {', '.join(f'`{one}`' for one in field['enum'])}."
    return words


def table():
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    lines = [
        f"| `{name}` | {_default(value)} | {_says(field)} |\n"
        for name, value, field in _leaves(schema, schema, values)
    ]
    return HEAD + "".join(lines)


def page(text):
    """The page with its table made anew."""
    before, _, rest = text.partition(HEAD)
    after = rest.splitlines(keepends=True)
    while after and after[0].startswith("|"):
        del after[0]
    return before + table() + "".join(after)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
