"""XPlane files (`*.xplane.pb`): protobuf's wire format decoded into columns, line by line."""
