"""OWE: fires, from their claim until they are delivered, dead or cancelled."""
