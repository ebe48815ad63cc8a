# Recordings of callbacks are played to the plugin, and what it does then is watched.
GATE_OUT := $(BUILD)/test/gate
tools: $(GATE_OUT)/play
PLAY_SIM := core/loader.o core/shim.o replay/recording.o replay/recording_json.o
$(GATE_OUT)/play: $(BUILD)/obj/test/gate/play.o $(PLAY_SIM:%=$(BUILD)/obj/test/nccl_sim/%) \
  $(BUILD)/obj/test/gpu/say.o $(FORMAT_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(SAN) -Wl,--export-dynamic-symbol=ncclGetVersion -o $@ $^ -ldl -lpthread -lm $(LDFLAGS)
