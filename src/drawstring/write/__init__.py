"""The write verbs: key, route, hand each file group its rows, commit."""
