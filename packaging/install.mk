# What `make install` puts beside programs and library: man pages and shell completion, printed by the programs from their own
# tables, or made from pages of docs/; a .pc; the agent's unit. Programs for another machine cannot print: MADE=folder names a
# build that runs here.
.PHONY: man completion install uninstall
MADE      ?= $(BUILD)
MAN_DIR   := $(BUILD)/man
COMPLETE_DIR := $(BUILD)/completion
UNITDIR   ?= $(PREFIX)/lib/systemd/system
# Where alerts send their readers; in the tree they name the place of the packages.
DOCS_URL  ?= file://$(PREFIX)/share/doc/nccl-inspector/docs

$(BUILD)/settings_man: $(BUILD)/obj/packaging/settings_man.o $(BUILD)/libplugin_test.a $(EXP_LIB) $(FORMAT_LIB)
	$(call say,LD,$@)
	$(Q)$(CXX) $(SAN) -o $@ $^ $(EXP_LIBS) $(CODEC_A) $(ZLIB_A) -ldl $(LDFLAGS)

ifeq ($(MADE),$(BUILD))
$(MAN_DIR)/.made $(COMPLETE_DIR)/.made: $(EXP_BIN) $(SIM_BIN) $(BUILD)/settings_man
endif
# NAME PAGE HEADS PURPOSE: a page of section 7.
page7 = awk -v name=$(1) -v section=7 -v version=$(NI_VERSION) -v only='$(3)' -v purpose='$(4)' -f packaging/md2man.awk $(2) >$(MAN_DIR)/$(1).7
$(MAN_DIR)/.made: packaging/md2man.awk README.md docs/format.md
$(MAN_DIR)/.made:
	$(call say,MAN,$(MAN_DIR))
	$(Q)rm -rf $(MAN_DIR) && mkdir -p $(MAN_DIR) && cd $(MAN_DIR) && made='$(abspath $(MADE))' && \
	$$made/nccl-inspector help --man >nccl-inspector.1 && $$made/nccl-sim --man >nccl-sim.1 && \
	$$made/settings_man >nccl-inspector-plugin.7 && $$made/nccl-inspector help --names >.names && \
	sed -n 's/ .*//p' .names | sort -u | cat - .names | while read -r c; do \
	$$made/nccl-inspector help --man $$c >nccl-inspector-$$(echo $$c | tr ' ' -).1 || exit 1; done && rm .names
	$(Q)$(call page7,nccl-inspector,README.md,|Three promises|The first job|What next|Settings|Limits|,the profiler that NCCL loads and the commands around it)
	$(Q)$(call page7,nccl-inspector-log-format,docs/format.md,,the lines that the NCCL Inspector plugin writes) && touch $@
$(COMPLETE_DIR)/.made:
	$(call say,SHELLS,$(COMPLETE_DIR))
	$(Q)rm -rf $(COMPLETE_DIR) && mkdir -p $(COMPLETE_DIR) && made='$(abspath $(MADE))' && cd $(COMPLETE_DIR) && \
	for s in bash: zsh:_ fish:; do of=$${s#*:} s=$${s%:*}; end=$$([ $$s != fish ] || echo .fish); \
	$$made/nccl-inspector completion $$s >$${of}nccl-inspector$$end && $$made/nccl-sim --completion=$$s >$${of}nccl-sim$$end || exit 1; done && touch .made
man: $(MAN_DIR)/.made
completion: $(COMPLETE_DIR)/.made

# Nothing links the library; the .pc is for scripts: NCCL_PROFILER_PLUGIN=$(pkg-config --variable=NCCL_PROFILER_PLUGIN nccl-inspector)
in_place = PREFIX='$(PREFIX)' BINDIR='$(BINDIR)' LIBDIR='$(LIBDIR)' MANDIR='$(MANDIR)' UNITDIR='$(UNITDIR)' DESTDIR='$(DESTDIR)' \
  BUILD='$(BUILD)' PROGRAMS='$(EXP_BIN) $(LIVE_BIN) $(SIM_BIN)' PRIVATE_LIBS='$(PRIVATE_LIBS)' MANIFEST='$(MANIFEST)' REPORT_DIR='$(REPORT_DIR)' packaging/install.sh
install: all man completion
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'bindir=$(BINDIR)' 'NCCL_PROFILER_PLUGIN=$${libdir}/$(notdir $(PLUGIN_SO))' '' \
	  'Name: NCCL Inspector' 'Description: profiler plugin for NCCL, and the command that reads its logs' 'Version: $(NI_VERSION)' >$(BUILD)/nccl-inspector.pc
	$(Q)sed 's|@BINDIR@|$(BINDIR)|' contrib/systemd/nccl-inspector-agent.service >$(BUILD)/nccl-inspector-agent.service
	$(Q)sed 's|file:///usr/share/doc/nccl-inspector/docs|$(DOCS_URL)|' contrib/prometheus/nccl-inspector-alerts.yml >$(BUILD)/nccl-inspector-alerts.yml
	$(Q)$(in_place) install
uninstall:
	$(Q)$(in_place) uninstall
