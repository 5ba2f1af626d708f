"""The count index: rows of terms and quasi-identifiers as bitmaps on disk, and exact counts of them."""
