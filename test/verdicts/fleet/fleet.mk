# ni-fleet-jobs: logs of simulated jobs, whose author knew the format of logs and public reports alone.
FLEET_DIR := test/verdicts/fleet
FLEET_SRC := $(sort $(wildcard $(FLEET_DIR)/*/*.cc))
FLEET_BIN := $(BUILD)/test/ni-fleet-jobs
tools: $(FLEET_BIN)
$(FLEET_BIN): $(FLEET_SRC:%.cc=$(BUILD)/obj/%.o)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(SAN) -o $@ $^ -lz -lm $(LDFLAGS)
$(BUILD)/obj/$(FLEET_DIR)/%.o: $(FLEET_DIR)/%.cc
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) -std=c++17 -O2 -g -MMD -MP $(SAN) -Wall -Wextra -I$(FLEET_DIR) -c -o $@ $<
-include $(FLEET_SRC:%.cc=$(BUILD)/obj/%.d)
