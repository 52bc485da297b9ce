package backoffice

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/ringi-dev/ringi"
)

// Register adds the office's nine tools: find_customer, list_orders,
// order_details and refund_policy read; verify_identity reads, and asks a
// person for what a caller said; refund, cancel_order, change_address and
// send_mail write. An error names the tool and the fault.
func (o *Office) Register(reg *ringi.Registry) error {
	return errors.Join(o.registerReads(reg), o.registerMoney(reg), o.registerWrites(reg))
}

func (o *Office) registerReads(reg *ringi.Registry) error {
	return errors.Join(
		ringi.AddTool(reg, ringi.Tool{Name: "find_customer", Effect: ringi.ReadOnly, DataClass: ringi.InternalConfiguration,
			Description: "Find customers by a part of their name or mail address, or by number. Gives name, mail and postal address of at most five."},
			o.findCustomer),
		ringi.AddTool(reg, ringi.Tool{Name: "list_orders", Effect: ringi.ReadOnly, DataClass: ringi.InternalConfiguration,
			Description: "List a customer's orders, newest first, with date, status, items and total."},
			o.listOrders),
		ringi.AddTool(reg, ringi.Tool{Name: "order_details", Effect: ringi.ReadOnly, DataClass: ringi.InternalConfiguration,
			Description: "Show one order whole: customer, status, note, each item with its price, the total, and what was paid back so far."},
			o.orderDetails),
		ringi.AddTool(reg, ringi.Tool{Name: "refund_policy", Effect: ringi.ReadOnly, DataClass: ringi.PublicContent,
			Description: "Read the shop's published rules on refunds for one topic. Read it before a refund is proposed."},
			o.refundPolicy),
		ringi.AddTool(reg, ringi.Tool{Name: "verify_identity", Effect: ringi.ReadOnly, DataClass: ringi.SecretAdjacent,
			Description: "Have a colleague check on the telephone who the caller is. The colleague types what the caller said; the answer is only whether it fits, and never the values.",
			InputSchema: verifyIdentitySchema, InputRequired: verifyIdentityForm},
			o.verifyIdentity),
	)
}

func (o *Office) registerMoney(reg *ringi.Registry) error {
	return ringi.AddTool(reg, ringi.Tool{Name: "refund", Effect: ringi.NonIdempotentWrite, DataClass: ringi.InternalConfiguration,
		Description: "Pay money back for an order, to the card that it was paid with. Cannot be undone. At most what is left of the order's total, in the order's currency.",
		InputSchema: refundSchema, AllowEdit: true, AllowRespond: true, Timeout: o.timeout()},
		o.refund, o.refundHooks())
}

func (o *Office) registerWrites(reg *ringi.Registry) error {
	return errors.Join(
		ringi.AddTool(reg, ringi.Tool{Name: "cancel_order", Effect: ringi.IdempotentWrite, DataClass: ringi.InternalConfiguration,
			Description: "Cancel an order that has not left the house. Check the caller's identity first. Pays nothing back by itself.",
			InputSchema: cancelOrderSchema},
			o.cancelOrder, o.cancelHooks()),
		ringi.AddTool(reg, ringi.Tool{Name: "change_address", Effect: ringi.IdempotentWrite, DataClass: ringi.InternalConfiguration,
			Description: "Replace a customer's postal address as a whole. Orders that have not left the house go to the new one.",
			InputSchema: changeAddressSchema, AllowEdit: true},
			o.changeAddress, o.addressHooks()),
		ringi.AddTool(reg, ringi.Tool{Name: "send_mail", Effect: ringi.NonIdempotentWrite, DataClass: ringi.InternalConfiguration,
			Description: "Send a mail to a customer, as plain text in the shop's name. Only addresses of customers are taken.",
			InputSchema: sendMailSchema, AllowEdit: true},
			o.sendMail, o.mailHooks()),
	)
}

// The schemas of the writes are given rather than inferred: they carry titles
// for the forms that people edit, and limits. No line of an address or a
// subject holds a control character.
var (
	refundSchema = json.RawMessage(`{
		"type": "object", "title": "Refund", "additionalProperties": false,
		"required": ["order_id", "amount_cents", "currency", "reason"],
		"properties": {
			"order_id": {"type": "string", "title": "Order", "description": "such as A-1042", "pattern": "^A-[0-9]{4}$"},
			"amount_cents": {"type": "integer", "title": "Amount in cents", "description": "3490 is 34.90", "minimum": 1, "maximum": 10000000},
			"currency": {"type": "string", "title": "Currency", "description": "the order's own (ISO 4217)", "enum": ["EUR", "GBP", "USD", "PLN", "CHF"]},
			"reason": {"type": "string", "title": "Reason", "description": "why, for the books", "minLength": 1, "maxLength": 500}
		}}`)
	cancelOrderSchema = json.RawMessage(`{
		"type": "object", "title": "Cancel an order", "additionalProperties": false,
		"required": ["order_id", "reason"],
		"properties": {
			"order_id": {"type": "string", "title": "Order", "description": "such as A-1057", "pattern": "^A-[0-9]{4}$"},
			"reason": {"type": "string", "title": "Reason", "description": "why, for the order's note", "minLength": 1, "maxLength": 500}
		}}`)
	changeAddressSchema = json.RawMessage(`{
		"type": "object", "title": "Change of address", "additionalProperties": false,
		"required": ["customer_id", "street", "postcode", "city", "country"],
		"properties": {
			"customer_id": {"type": "string", "title": "Customer", "description": "such as C-1002", "pattern": "^C-[0-9]{4}$"},
			"street": {"type": "string", "title": "Street and number", "minLength": 1, "maxLength": 100, "pattern": "^[^\\x00-\\x1f\\x7f]*$"},
			"postcode": {"type": "string", "title": "Postcode", "minLength": 1, "maxLength": 20, "pattern": "^[^\\x00-\\x1f\\x7f]*$"},
			"city": {"type": "string", "title": "City", "minLength": 1, "maxLength": 100, "pattern": "^[^\\x00-\\x1f\\x7f]*$"},
			"country": {"type": "string", "title": "Country", "minLength": 1, "maxLength": 60, "pattern": "^[^\\x00-\\x1f\\x7f]*$"}
		}}`)
	sendMailSchema = json.RawMessage(`{
		"type": "object", "title": "Mail", "additionalProperties": false,
		"required": ["to", "subject", "body"],
		"properties": {
			"to": {"type": "string", "title": "To", "description": "a customer's mail address", "minLength": 3, "maxLength": 254},
			"subject": {"type": "string", "title": "Subject", "minLength": 1, "maxLength": 200, "pattern": "^[^\\x00-\\x1f\\x7f]*$"},
			"body": {"type": "string", "title": "Text", "description": "plain text", "minLength": 1, "maxLength": 10000}
		}}`)
	verifyIdentitySchema = json.RawMessage(`{
		"type": "object", "title": "Check of identity", "additionalProperties": false,
		"required": ["customer_id", "card_last4", "named_address"],
		"properties": {
			"customer_id": {"type": "string", "title": "Customer", "description": "whom the caller claims to be, such as C-1003", "pattern": "^C-[0-9]{4}$"},
			"card_last4": {"type": "string", "pattern": "^[0-9]{4}$"},
			"named_address": {"type": "boolean"}
		}}`)
	verifyIdentityForm = json.RawMessage(`{
		"type": "object", "title": "What the caller said", "additionalProperties": false,
		"required": ["card_last4", "named_address"],
		"properties": {
			"card_last4": {"type": "string", "title": "Last four digits of the card", "description": "as the caller says them", "pattern": "^[0-9]{4}$"},
			"named_address": {"type": "boolean", "title": "The caller named the delivery address"}
		}}`)
)

// encode writes JSON without escapes for HTML: people read it, and every page
// escapes by itself. The values are of this package, so it cannot fail.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
