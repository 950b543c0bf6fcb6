"""Private words of a user who does not exist, and ways in which they are written."""

import json
from pathlib import Path
from urllib.parse import quote

ENVIRON = {
    "HOME": "/home/mcurie",
    "USER": "mcurie",
    "HOSTNAME": "kepler7.uni.example",
    "WANDB_API_KEY": "0123456789abcdef01234567",
    "PATH": "/usr/bin",
}
PLACES = {Path("/srv/groups/hadrons/paper"): "[folder]", Path("/data/jérôme x/source"): "[source]"}
PRIVATE = {
    "/home/mcurie": "[home]",
    "/Users/mcurie": "[home]",
    "/srv/groups/hadrons/paper": "[folder]",
    "/data/jérôme x/source": "[source]",
    "mcurie": "[user]",
    "kepler7.uni.example": "[host]",
    "kepler7": "[host]",
    "0123456789abcdef01234567": "[redacted]",
    "sk-ant-abcdefghijklmnop123456": "[redacted]",
    "ghp_0123456789abcdefghij": "[redacted]",
}
SPELLINGS = {
    "plain": str,
    "upper": str.upper,
    "JSON": lambda word: json.dumps(word)[1:-1],
    "URL": quote,
    "form": lambda word: quote(word, safe=""),
}
