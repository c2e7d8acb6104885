"""What a person sees of a run: `page.report` writes one HTML file; `charts` draws."""
