# ni-jobs: logs of simulated training jobs with planted causes (docs/verdicts.md).
JOBS_SRC := $(sort $(wildcard test/jobs/*.c test/jobs/*/*.c))
JOBS_BIN := $(BUILD)/test/ni-jobs
.PHONY: jobs
jobs: $(JOBS_BIN)
tools: $(JOBS_BIN)
$(JOBS_BIN): $(JOBS_SRC:%.c=$(BUILD)/obj/%.o) $(EXP_LIB)
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SAN) -o $@ $^ -lz -lm $(LDFLAGS)
