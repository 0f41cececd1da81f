"""Makes `python -m tests.casebook` mean this folder, whatever else is installed under that name."""
