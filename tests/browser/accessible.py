"""What axe-core finds in the way of people who do not see well, or use a keyboard only."""


def barriers(page):
    """Serious and critical findings, contrast included: the rule, and where."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        (one["id"], one["impact"], [node["target"] for node in one["nodes"]][:5])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
