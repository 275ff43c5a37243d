// Package infotext builds the text of INFO: sections, fields, and numbers in readable form.
package infotext
