"""The write verbs: key, tag locations, hand each file group its rows, commit."""
