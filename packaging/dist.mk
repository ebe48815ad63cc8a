# make dist: what a release consists of, in $(BUILD)/dist (packaging/dist.sh; docs/install.md, CONTRIBUTING.md).
.PHONY: dist
DIST_ARCHS ?= x86_64 aarch64
dist:
	$(Q)packaging/dist.sh $(BUILD)/dist $(DIST_ARCHS)
