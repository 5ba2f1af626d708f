"""Which method, which k, m and epsilon, for these data and this recipient; trade-offs; the expert's document."""
