# The gate: instructions instead of seconds (docs/benchmarks.md "The gate").
GATE_OUT := $(BUILD)/test/gate
.PHONY: gate gate-accept gate_tools
tools: $(GATE_OUT)/play
PLAY_SIM := core/loader.o core/shim.o replay/recording.o replay/recording_json.o
$(GATE_OUT)/play: $(BUILD)/obj/test/gate/play.o $(PLAY_SIM:%=$(BUILD)/obj/test/nccl_sim/%) \
  $(BUILD)/obj/test/gpu/say.o $(FORMAT_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SAN) -Wl,--export-dynamic-symbol=ncclGetVersion -o $@ $^ -ldl -lpthread -lm $(LDFLAGS)
ifneq ($(LIVE_BIN),)
tools: $(GATE_OUT)/agent_minute
endif
$(GATE_OUT)/agent_minute: $(BUILD)/obj/test/gate/agent_minute.o $(LIVE_LIB) $(EXP_LIB) $(FORMAT_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CXX) $(SAN) -o $@ $^ $(LIVE_LIBS) $(EXP_LIBS) $(LDFLAGS)

# What a row may grow by, and how a row is raised: docs/benchmarks.md. GATE_RUNS: only the runs whose names
# match.
gate_run = python3 test/gate/gate.py $(BUILD) $(if $(GATE_RUNS),--runs '$(GATE_RUNS)')
GATE_OTHERS := same_world.so bench/bench_burst bench/bench_dump host/loggen host/session_feed
gate_tools: plugin exporter $(GATE_OUT)/play $(if $(LIVE_BIN),$(GATE_OUT)/agent_minute) \
  $(GATE_OTHERS:%=$(BUILD)/test/%)
gate: gate_tools
	$(Q)$(gate_run)
gate-accept: gate_tools
	$(Q)$(gate_run) --accept
