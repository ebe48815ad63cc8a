# What an observer who knows a job's plan can tell from its logs (test/verdicts/oracle/oracle.py).
ORACLE_DIR := test/verdicts/oracle
ORACLE_BIN := $(BUILD)/test/ni-features $(BUILD)/test/ni-observer
tools: $(ORACLE_BIN)
$(ORACLE_BIN): $(BUILD)/test/ni-%: $(BUILD)/obj/$(ORACLE_DIR)/%.o
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(SAN) -o $@ $^ -lz -lm $(LDFLAGS)
$(BUILD)/obj/$(ORACLE_DIR)/%.o: $(ORACLE_DIR)/%.cc
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) -std=c++17 -O2 -g -MMD -MP $(SAN) -Wall -Wextra -c -o $@ $<
-include $(BUILD)/obj/$(ORACLE_DIR)/features.d $(BUILD)/obj/$(ORACLE_DIR)/observer.d
