-- How the form of a login is filled in, JSON; without one the server asks by HTTP. Never the secret: that is sealed.
ALTER TABLE credentials ADD COLUMN form TEXT COLLATE "C";
