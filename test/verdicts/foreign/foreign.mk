# ni-foreign-jobs: logs of simulated jobs from a model whose author knew the format of logs alone (docs/verdicts.md).
FOREIGN_DIR := test/verdicts/foreign
FOREIGN_SRC := $(sort $(wildcard $(FOREIGN_DIR)/*/*.cc))
FOREIGN_BIN := $(BUILD)/test/ni-foreign-jobs
tools: $(FOREIGN_BIN)
$(FOREIGN_BIN): $(FOREIGN_SRC:%.cc=$(BUILD)/obj/%.o)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(SAN) -o $@ $^ -lz -lm $(LDFLAGS)
$(BUILD)/obj/$(FOREIGN_DIR)/%.o: $(FOREIGN_DIR)/%.cc
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) -std=c++17 -O2 -g -MMD -MP $(SAN) -Wall -Wextra $(addprefix -I$(FOREIGN_DIR)/,machine shapes job) -c -o $@ $<
-include $(FOREIGN_SRC:%.cc=$(BUILD)/obj/%.d)
