# What a distribution hardens its programs with (dpkg-buildflags, hardening=+all), for all that we ship; docs/security.md has what it costs.
# Not beside a sanitizer (SAN): that sees more, and takes the place of the same functions. What the user's flags say goes before.
# A change here makes all objects anew. test/cases/build/build_hardened.sh reads the binaries.
ifeq ($(SAN),)
# The machine's own protection of jumps and returns. Shadow stacks are marked by the linker (-z shstk), since Debian's archives and start
# files lack the mark: they return where they were called from. Indirect branches are marked where all that is linked has the mark.
HARDEN_BRANCH := $(if $(filter x86_64-%,$(MACHINE)),-fcf-protection=full,$(if $(filter aarch64-%,$(MACHINE)),-mbranch-protection=standard))
HARDEN_BRANCH_LD := $(if $(filter x86_64-%,$(MACHINE)),-Wl$(comma)-z$(comma)shstk)
# glibc checks lengths only where the compiler optimizes.
harden_optimized = $(filter-out -O0,$(lastword $(filter -O%,$(OPT) $(CFLAGS))))
harden_fortify = $(if $(harden_optimized),$(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS) $(CXXFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
harden = -fstack-protector-strong -fstack-clash-protection $(HARDEN_BRANCH) $(harden_fortify) -fPIE
# The plugin's callbacks, in instructions (make gate): marks of indirect branches, which Linux does not enforce, 1.6 % in the mean and
# 2.8 % at most; canaries 6.9 % and 15.9 %. So the plugin has the shadow stack's half, and those rooms that callbacks run through
# have canaries where a function has an array of text. The other flags cost them nothing. On aarch64 signing is two instructions a
# function: not there.
harden_plugin = $(if $(filter -fcf%,$(HARDEN_BRANCH)),-fcf-protection=return,$(if $(HARDEN_BRANCH),-mbranch-protection=pac-ret))
HARDEN_CALLBACKS := -fstack-protector $(if $(filter -mbranch%,$(HARDEN_BRANCH)),-mbranch-protection=none)
HARDEN_LD := -pie -Wl,-z,relro -Wl,-z,now $(HARDEN_BRANCH_LD)
endif
HARDEN_SO := -Wl,-z,relro -Wl,-z,now $(HARDEN_BRANCH_LD)
