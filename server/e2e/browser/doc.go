// Package browser has the tests of the console's page in Chromium, headless, driven with
// chromedp. Each view shows its data and follows the changes of other clients, hostile names
// stay text, the page fits a phone, and axe-core finds nothing serious.
//
// Without Chromium the tests are skipped. "make test" installs it with .ci/chromium where apt
// can. Without axe-core, which .ci/clients installs where npm can, TestAccessible is skipped.
// ZSETD_SCREENSHOTS=folder writes a picture of each view there.
package browser
