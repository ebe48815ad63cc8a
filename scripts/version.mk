# The one place where the version is written; the revision comes from git, or is "unknown" in a tarball.
NI_VERSION := 0.1.0
NI_GIT_REV := $(shell git rev-parse --short=9 HEAD 2>/dev/null || echo unknown)
