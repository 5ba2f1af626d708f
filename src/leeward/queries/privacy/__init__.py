"""What noise protects and costs: mechanisms and accounting. Holds no data and no database."""
