"""Whether this processor multiplies numbers of eight bits without loss."""

from truerank.vectors.encoders.speed import instruction_sets

#: Without these instructions, sums of two products of eight bits saturate at sixteen, and int8 agrees with fp32 less.
SATURATES = {"avx_vnni", "avx512_vnni", "amx_int8", "i8mm"}.isdisjoint(instruction_sets())
WHY_SATURATED = "products of eight bits saturate on this processor: it has no VNNI, AMX or i8mm"
