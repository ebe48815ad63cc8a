# The one place where the version is written; the revision comes from git, in a tarball of `make dist` from scripts/revision.
NI_VERSION := 0.1.0
NI_GIT_REV := $(shell git rev-parse --short=9 HEAD 2>/dev/null || sed -n 's/^\([0-9a-f]\{9\}\).*/\1/p' scripts/revision | grep . || echo unknown)
