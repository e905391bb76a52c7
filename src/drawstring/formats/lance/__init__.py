"""Lance files, by the package `lance` (pylance), an optional extra; their footers are read without it."""
