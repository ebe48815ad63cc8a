# Man pages and shell completion, printed by the programs from their own tables; the simulator's scenarios; the agent's unit and
# settings. `make install` puts them where man, bash, nccl-sim and systemd look. Programs for another machine cannot print:
# MADE=folder names a build that runs here.
.PHONY: man completion install-words uninstall-words
MADE      ?= $(BUILD)
MAN_DIR   := $(BUILD)/man
COMPLETE_DIR := $(BUILD)/completion
COMPLETIONS = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
SCENARIOS   = $(DESTDIR)$(PREFIX)/share/nccl-inspector
UNITS       = $(DESTDIR)$(PREFIX)/lib/systemd/system

$(BUILD)/settings_man: $(BUILD)/obj/scripts/settings_man.o $(BUILD)/libplugin_test.a $(EXP_LIB) $(FORMAT_LIB)
	$(call say,LD,$@)
	$(Q)$(CXX) $(SAN) -o $@ $^ $(EXP_LIBS) $(CODEC_A) $(ZLIB_A) -ldl $(LDFLAGS)

ifeq ($(MADE),$(BUILD))
$(MAN_DIR)/.made $(COMPLETE_DIR)/.made: $(EXP_BIN) $(SIM_BIN) $(BUILD)/settings_man
endif
$(MAN_DIR)/.made:
	$(call say,MAN,$(MAN_DIR))
	$(Q)rm -rf $(MAN_DIR) && mkdir -p $(MAN_DIR) && cd $(MAN_DIR) && made='$(abspath $(MADE))' && \
	$$made/nccl-inspector help --man >nccl-inspector.1 && $$made/nccl-sim --man >nccl-sim.1 && \
	$$made/settings_man >nccl-inspector-plugin.7 && $$made/nccl-inspector help --names | while read -r c; do \
	$$made/nccl-inspector help --man $$c >nccl-inspector-$$(echo $$c | tr ' ' -).1 || exit 1; done && touch .made
$(COMPLETE_DIR)/.made:
	$(call say,BASH,$(COMPLETE_DIR))
	$(Q)mkdir -p $(COMPLETE_DIR) && $(MADE)/nccl-inspector completion >$(COMPLETE_DIR)/nccl-inspector && \
	$(MADE)/nccl-sim --completion >$(COMPLETE_DIR)/nccl-sim && touch $@
man: $(MAN_DIR)/.made
completion: $(COMPLETE_DIR)/.made

install: install-words
install-words: man completion
	install -d $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man7 $(COMPLETIONS) $(SCENARIOS)/scenarios
	install -m 644 $(MAN_DIR)/*.1 $(DESTDIR)$(MANDIR)/man1/
	install -m 644 $(MAN_DIR)/*.7 $(DESTDIR)$(MANDIR)/man7/
	install -m 644 $(COMPLETE_DIR)/* $(COMPLETIONS)/
	install -m 644 test/scenarios/*.scn $(SCENARIOS)/scenarios/
ifneq ($(LIVE_BIN),)
	install -d $(UNITS) && install -m 644 contrib/agent.conf $(SCENARIOS)/
	sed 's|@BINDIR@|$(BINDIR)|' contrib/systemd/nccl-inspector-agent.service >$(UNITS)/nccl-inspector-agent.service
endif
uninstall: uninstall-words
uninstall-words:
	rm -f $(DESTDIR)$(MANDIR)/man1/nccl-inspector*.1 $(DESTDIR)$(MANDIR)/man1/nccl-sim.1 $(DESTDIR)$(MANDIR)/man7/nccl-inspector-plugin.7
	rm -f $(COMPLETIONS)/nccl-inspector $(COMPLETIONS)/nccl-sim $(UNITS)/nccl-inspector-agent.service
	rm -rf $(SCENARIOS)
