"""Is a health term affirmed, current, and about the patient? (ConText)"""
