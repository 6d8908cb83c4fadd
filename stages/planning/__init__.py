"""What a run will take: amounts of data, work in FLOPs and bytes, the pace of this machine, and units."""
